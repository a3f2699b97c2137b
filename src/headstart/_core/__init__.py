"""What all of the package stands on: compiled kernels, threads, checks and files."""
