"""What `spac bench` measures, one file a section; ratios come from one run on one machine."""
