"""What the names of a backward pass's inputs begin with: where a call has them from."""

# An input or an output of the forward pass, and its name.
INPUT = "input_"
OUTPUT = "output_"
# A tensor that the forward pass of training returns beside its outputs, and its number.
SAVED = "saved_"
# The gradient of an output, and its name; in the names of outputs, the gradient of an input.
GRADIENT = "grad_"
