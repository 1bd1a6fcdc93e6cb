RIVALS += bmrm_accept bmrm_optima bmrm_constants bmrm_mnist bmrm_drop bmrm_sensitivity bmrm_classical
RIVALS_SIMULATED += bmrm_plates bmrm_landmarks bmrm_plates_matched bmrm_plates_hard bmrm_landmarks_matched
RIVALS_DRAWN += bmrm
FIGURES += bmrm_accept bmrm_optima bmrm_constants bmrm_mnist bmrm_drop bmrm_sensitivity bmrm_classical bmrm_plates bmrm_plates_matched bmrm_landmarks bmrm_landmarks_matched bmrm
