from firestore_outbox.cli import main

main()
