# python -m datasets ridesharing, with --type-column event
Accept(trip: int, driver: int, rider: int, district: string)
Pickup(trip: int, driver: int, rider: int, district: string)
Cancel(trip: int, driver: int, rider: int, district: string)
Wait(trip: int, driver: int, rider: int, district: string)
