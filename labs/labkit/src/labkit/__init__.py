"""What a student's notebook may import; it needs NumPy, Matplotlib and jaxtyping, and holds no answer.

labkit.formats        facts of the number formats, records of quantised arrays
labkit.expect         comparisons that say where an answer differs
labkit.plotting       the course's plot style and its colours
labkit.draw           number lines, bytes and groups, drawn
labkit.tensors        real keys, values and queries
labkit.block_formats  MXFP4 and FP8 with UE8M0 scales, built from the student's own parts
labkit.suspects       faulty quantisers to convict
labkit.given          what earlier labs built, as black boxes
labkit.validate       the student's own check of a notebook
"""
