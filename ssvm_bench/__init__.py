"""An experiment runner that measures how fast structural-SVM training algorithms converge.

The objective, its dual and every name used below:

.. code-block:: text

    primal   P(w) = λ/2 ‖w‖² + Σ_i H_i(w)
    hinge    H_i(w) = max_y ⟨φ^{iy}, [w 1]⟩
    plane    φ^{iy} = 1/n [ϕ(x_i,y) − ϕ(x_i,y_i),  Δ(y_i,y) + Θ_i(y) − Θ_i(y_i)] ∈ R^{d+1}
    dual     F(φ) = −‖φ⋆‖²/(2λ) + φ∘     with φ = Σ_i φ^i and w = −φ⋆/λ
    gap      P(w) − F(φ) ≥ 0             whenever the max-oracle is exact

The data's path is straight: config → dataset → problem (terms, oracle, λ) → solver → trace →
figures. Nothing reaches back.
"""

__version__ = "0.1.0"
