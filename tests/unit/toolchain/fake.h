// Stands for a header of torch.
