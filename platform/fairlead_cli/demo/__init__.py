"""`fairlead demo`: a canary that promotes itself and a bad one that rolls back, on real images and real processes."""
