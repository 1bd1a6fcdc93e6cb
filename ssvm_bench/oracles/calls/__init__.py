"""Who calls the oracle of terms that are known at once: this process, others, or a cluster."""
