.PHONY: streams dual-coordinate

# files of examples that are made of other datasets
STREAMS := streams/digits.parquet streams/neighbours.parquet

streams: $(STREAMS) ## write the files of the datasets digits and neighbours: minutes, half a gigabyte

dual-coordinate: $(STREAMS) ## dual coordinate descent, in memory and from a stream, on the real data: two hours
	$(call make-runs,dual_coordinate dual_coordinate_full dual_coordinate_delay dual_coordinate_planes dual_coordinate_tol dual_coordinate_trees,$(REAL))

streams/digits.parquet: | $(PROGRAM)
	mkdir -p $(@D)
	$(BIN)/ssvm-bench data export mnist $@ --source real \
	    --repeat 34 --jitter shift=1,rotation=10,elastic=1.4

streams/neighbours.parquet: | $(PROGRAM)
	mkdir -p $(@D)
	$(BIN)/ssvm-bench data export usps $@ --source real \
	    --repeat 5 --order neighbours --jitter shift=1

FIGURES += dual_coordinate dual_coordinate_delay dual_coordinate_full dual_coordinate_planes dual_coordinate_tol dual_coordinate_trees
