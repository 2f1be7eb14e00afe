"""The pane-matrix operator: what a pane does to open windows, as one linear map for all of them."""
