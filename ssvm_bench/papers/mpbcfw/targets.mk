.PHONY: reproduce reproduce-quick fidelity

reproduce: $(WITH_EXTRAS) ## the MP-BCFW paper's figures and claims on the real data: hours
	$(call make-runs,mpbcfw_fig4 mpbcfw_start mpbcfw_costs mpbcfw_fig3 mpbcfw_averages,$(REAL))
	$(call make-runs,mpbcfw_fixed mpbcfw_scale mpbcfw_horses mpbcfw_fitted,$(REAL))
	$(call draw,mpbcfw_fig5 mpbcfw_fig6 mpbcfw_slope mpbcfw_claims,$(REAL))
	$(BIN)/ssvm-bench report $(COMMITTED)

reproduce-quick: $(WITH_EXTRAS) ## the same in small, on synthetic data: five minutes
	$(BIN)/ssvm-bench experiment mpbcfw_quick --jobs $(JOBS) results_dir=results/quick
	$(BIN)/ssvm-bench report results_dir=results/quick

fidelity: $(WITH_EXTRAS) ## what the MP-BCFW paper leaves open, settled by runs on the real data: an hour
	$(call make-runs,fidelity,$(REAL))

FIGURES += mpbcfw_fig3 mpbcfw_averages mpbcfw_scale mpbcfw_horses mpbcfw_fig4 mpbcfw_fig5 mpbcfw_fig6 mpbcfw_start mpbcfw_costs mpbcfw_slope mpbcfw_claims fidelity
