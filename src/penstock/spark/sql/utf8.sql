set local client_encoding = 'UTF8'
