"""Look-alikes of published exports, made from a network of ours: test data with their exact inputs and outputs."""
