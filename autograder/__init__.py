"""The autograder: the kernel computes, the judge outside it decides."""
