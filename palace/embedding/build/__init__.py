"""How the default model is made from its published weights: fetched, read, written as ONNX with its tokenizer."""
