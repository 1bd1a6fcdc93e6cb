"""Points whose labels and classifier are found together: losses, kernels, energies, label steps."""
