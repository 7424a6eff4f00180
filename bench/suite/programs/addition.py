from servers.everything import get_sum
get_sum(48213.75, 1906.5)
