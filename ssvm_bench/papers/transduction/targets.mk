.PHONY: transduction

transduction: $(WITH_EXTRAS) ## discrete-continuous ADMM and its baselines, on the real data: hours
	$(call make-runs,dcadmm_moons dcadmm_ssl_paper dcadmm_ssl dcadmm_ssl_tau dcadmm_ssl_fixed dcadmm_ssl_alternating dcadmm_ssl_open dcadmm_ssl_search dcadmm_ssl_ours dcadmm_ssl_median dcadmm_convergence dcadmm_solves dcadmm_scribbles dcadmm_scribbles_fine dcadmm_video dcadmm_video_rho dcadmm_separable dcadmm_video_grid,$(REAL))
	$(call draw,dcadmm_claims)

FIGURES += dcadmm_moons dcadmm_ssl_paper dcadmm_ssl dcadmm_ssl_tau dcadmm_ssl_fixed dcadmm_ssl_alternating dcadmm_ssl_open dcadmm_ssl_search dcadmm_ssl_ours dcadmm_ssl_median dcadmm_convergence dcadmm_solves dcadmm_scribbles dcadmm_scribbles_fine dcadmm_video dcadmm_video_rho dcadmm_separable dcadmm_video_grid dcadmm_claims
