"""`make gpu-check`: what can only be known on a real GPU, in one script of under eight minutes.

Each section runs in a process of its own, so that a fault of one leaves the others a working
device. It needs torch, transformers, numpy, numba, pandas and pyarrow, not Hydra, SimPy or PuLP.
"""
