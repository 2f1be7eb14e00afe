"""Events as they arrive: pipes, files that grow, folders, sockets and Kafka, as blocks of whole lines."""
