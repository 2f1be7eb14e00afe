# python -m datasets taxi, with --time-unit us --order-column seq
Pickup(trip_id: int, zone: int, vendor: int, fare_amount: float)
Dropoff(trip_id: int, zone: int, vendor: int, fare_amount: float)
