"""What the pipeline is made of: the state of a call, and the stages that need a file of their own."""
