select "penstock".bell_v1()
