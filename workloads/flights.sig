# python -m datasets flights
Departure(flight_id: int, carrier: string, tailnum: string, origin: string, dest: string, dep_delay: int)
Arrival(flight_id: int, carrier: string, tailnum: string, origin: string, dest: string, arr_delay: int)
Cancelled(flight_id: int, carrier: string, origin: string, dest: string)
