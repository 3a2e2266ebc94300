"""Results of earlier labs as black boxes, one module per lab: lab N sees those of labs before it, and no other.

Each is made with a library, never with the text of an answer. The first lab that builds on another brings its module.
"""
