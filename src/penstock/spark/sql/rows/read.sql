select {columns}
from {view} h
where {where}
