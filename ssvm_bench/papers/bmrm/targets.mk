RIVALS += bmrm_mnist bmrm_drop
RIVALS_SIMULATED += bmrm_plates bmrm_landmarks
RIVALS_DRAWN += bmrm
FIGURES += bmrm_mnist bmrm_drop bmrm_plates bmrm_landmarks bmrm
