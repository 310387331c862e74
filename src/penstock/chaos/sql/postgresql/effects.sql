select n from "penstock_chaos".effect
