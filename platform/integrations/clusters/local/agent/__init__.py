"""Local agent: applies the driver's desired state and writes the observed state. No Django, no database.

    __main__   the command line
    agent      the loop: read desired files, start and retire replicas, route, let go, write status
    service    what one service wants and has
    replica    one runtime process and its life
    routing    the order in which Envoy gets to know of changes
    gateway    the Envoy process; admin reads its admin page
    processes  a program with a log, a record and an end
    memory_watchdog  ends replicas that take too much memory, as memory_limit (pure) decides; process_memory reads it
    shares     weights over what is ready (pure)

Everything but the making of model repositories happens in one thread's event loop.
"""
