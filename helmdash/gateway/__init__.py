"""The gateway: LLM clients of four vendors in, any configured upstream out, every call recorded.

Raw ASGI beside Django, whose own cost for each request this path does not pay (ADR 0009). It
translates and hands over; what is stored, and how, is the recorder's affair.
"""
