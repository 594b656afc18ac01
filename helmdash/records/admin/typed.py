"""Django's admin and form classes, with the type parameter that django-stubs gives them.

Django's own classes cannot be subscripted while the program runs; these can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as ModelAdmin
    from django.contrib.admin import TabularInline as TabularInline
    from django.forms import ModelForm as ModelForm
else:
    from django import forms
    from django.contrib import admin

    class ModelAdmin(admin.ModelAdmin):
        def __class_getitem__(cls, item: Any) -> type:
            return cls

    class TabularInline(admin.TabularInline):
        def __class_getitem__(cls, item: Any) -> type:
            return cls

    class ModelForm(forms.ModelForm):
        def __class_getitem__(cls, item: Any) -> type:
            return cls
