# python -m datasets mtl
p()
q()
r()
