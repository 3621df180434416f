"""The theory of the reports: claims, identities, symbolic costs, convolution as a matrix, a gradient by hand."""
