.PHONY: transduction network

transduction: $(WITH_EXTRAS) ## discrete-continuous ADMM and its baselines, on the real data: hours
	$(call make-runs,dcadmm_moons dcadmm_ssl_paper dcadmm_ssl_sdp dcadmm_ssl dcadmm_ssl_tau dcadmm_ssl_fixed dcadmm_ssl_alternating dcadmm_ssl_open dcadmm_ssl_search dcadmm_ssl_ours dcadmm_ssl_median dcadmm_convergence dcadmm_solves dcadmm_scribbles dcadmm_scribbles_fine dcadmm_video dcadmm_video_rho dcadmm_separable dcadmm_video_grid,$(REAL))
	$(call draw,dcadmm_claims)

# features of superpixels by a network, which is trained on pictures and on no video
FEATURES := $(addprefix features/, car_shadow.npz car_shadow_untrained.npz bmx_trees.npz horses.npz scenes.npz)
of-network = $(BIN)/python docs/deep_features.py $(1) $@ --network $<

network: $(FEATURES) ## the videos and scribbles with the features of a network, which is trained first: an hour
	$(call make-runs,dcadmm_network dcadmm_network_nu,$(REAL))

features/network.npz features/untrained.npz: | $(WITH_EXTRAS)
	$(PIP) --editable '.[images,network]'
	mkdir -p $(@D)
	$(BIN)/python docs/trained_network.py $(@:.npz=.part.npz) $(if $(findstring untrained,$@),--steps 0)
	mv $(@:.npz=.part.npz) $@

features/car_shadow.npz: features/network.npz
	$(call of-network,davis_car_shadow)

features/car_shadow_untrained.npz: features/untrained.npz
	$(call of-network,davis_car_shadow)

features/bmx_trees.npz: features/network.npz
	$(call of-network,davis_bmx_trees)

features/horses.npz: features/network.npz
	$(call of-network,weizmann) --pictures $$(seq 0 20 300)

features/scenes.npz: features/network.npz
	$(call of-network,stanford) --pictures $$(seq 0 40 160)

FIGURES += dcadmm_moons dcadmm_ssl_paper dcadmm_ssl_sdp dcadmm_ssl dcadmm_ssl_tau dcadmm_ssl_fixed dcadmm_ssl_alternating dcadmm_ssl_open dcadmm_ssl_search dcadmm_ssl_ours dcadmm_ssl_median dcadmm_convergence dcadmm_solves dcadmm_scribbles dcadmm_scribbles_fine dcadmm_video dcadmm_video_rho dcadmm_separable dcadmm_video_grid dcadmm_network dcadmm_network_nu dcadmm_claims
