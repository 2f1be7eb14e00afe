# star, linear and triangle of Schneider et al. (STTT 2021), §6.1
A(x: int, y: int)
B(x: int, y: int)
C(x: int, y: int)
