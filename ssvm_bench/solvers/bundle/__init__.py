"""Bundle methods: models of the risk, and the quadratic programs that minimise them."""
