# python -m datasets stock, with --time-unit us --order-column seq
Up(symbol: string, price: float, size: int)
Down(symbol: string, price: float, size: int)
Flat(symbol: string, price: float, size: int)
