RIVALS += bcfw_poster_optima bcfw_poster bcfw_poster_rates
FIGURES += bcfw_poster bcfw_poster_rates
