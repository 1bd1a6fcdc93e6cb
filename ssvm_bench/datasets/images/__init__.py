"""Pictures, real or synthetic, and the pipeline from them to graphs of superpixels."""
