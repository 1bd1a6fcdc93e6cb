"""The problem of transduction: losses and their proximal steps, kernels, energies of labels."""
