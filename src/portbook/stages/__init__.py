"""Parts of the pipeline: the state of a call, and the stages that have a file of their own."""
