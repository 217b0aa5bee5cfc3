module example.com/cart

go 1.21
