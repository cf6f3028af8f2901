"""The console: pages in a browser that show and steer everything.

app        routes, sessions, headers: what every request passes
identity   who signs in: Firebase Auth, or the stand-in of the dev stack
rights     who may do what
security   cookies, CSRF, headers
views      what pages show, read once for all viewers
screens    a page: what it shows, and for whom
deeds      an action: its subject, the right it takes, what it does
pages/     the screens and deeds, by topic
"""
