"""Care of conversations: the step before each generation, fresh starts, and reminders.

Every write locks the conversation's row first (operations.database.transactions), so that two
workers cannot count one generation twice and positions have no gaps.
"""

from __future__ import annotations

from helmdash.operations.care.advancing import advance, keep_prompt
from helmdash.operations.care.braking import go_on
from helmdash.operations.care.clearing import clear, restart_of
from helmdash.operations.care.peeking import NothingDue, peek
from helmdash.operations.care.problems import Braked, CareProblem, NoConversation, NoReminder
from helmdash.operations.care.reminders import add_reminder, delete_reminder, update_reminder
from helmdash.operations.care.values import Advanced, Cleared, ClientHistory, Newest, Restart
from helmdash.queries.conversations.care import ReminderView

__all__ = [
    "Advanced",
    "Braked",
    "CareProblem",
    "Cleared",
    "ClientHistory",
    "Newest",
    "NoConversation",
    "NoReminder",
    "NothingDue",
    "ReminderView",
    "Restart",
    "add_reminder",
    "advance",
    "clear",
    "delete_reminder",
    "go_on",
    "keep_prompt",
    "peek",
    "restart_of",
    "update_reminder",
]
