"""Process holder: the parent of Envoy and of the replicas, so that they outlive the agent that started them.

    __main__  the process: starts programs, waits for their ends
    wire      messages with descriptors between it and the agent
    client    the agent's end

    fairlead up ---> holder ---> Envoy, replicas, relays    end with the holder (PR_SET_PDEATHSIG)
         |              ^ a pair of sockets, which has no address
         '-------> agent, and the next one after its end

The holder ends, and all programs with it, when no process has the other end of its socket any more.
"""
