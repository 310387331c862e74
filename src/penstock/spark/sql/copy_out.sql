copy ({query}) to stdout (format csv, encoding 'UTF8')
