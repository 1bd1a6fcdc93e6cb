"""From pictures to graphs of superpixels: the pipeline that all image datasets share."""
