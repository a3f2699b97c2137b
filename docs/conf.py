"""How sphinx builds the site: `make docs`, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import matplotlib  # noqa: E402

import headstart  # noqa: E402

matplotlib.use("agg")

project = "headstart"
copyright = "the headstart developers"  # noqa: A001
version = release = headstart.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "gallery_parts",
    "mathml",
    "api",
    "commands",
    "readme",
]
exclude_patterns = ["_build", "_ext", "gallery"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True
# Docstrings put arguments in backticks as well as functions, and signatures name types of others.
nitpick_ignore_regex = [("py:obj", ".*"), ("py:class", ".*"), ("py:data", ".*")]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate_overwrite = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "../examples"],
    "gallery_dirs": ["auto_gallery", "auto_examples"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(serve|prepare|__init__)\.py$",
    "within_subsection_order": "gallery_parts.Told",
    "image_scrapers": ("matplotlib", "gallery_parts.written_picture"),
    "reset_modules": ("matplotlib", "gallery_parts.give_file"),
    "backreferences_dir": "api/shown",
    "doc_module": ("headstart",),
    "reference_url": {"headstart": None},
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 3600,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}


html_theme = "pydata_sphinx_theme"
html_title = "headstart"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "headstart"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"start": [], "index": []}
