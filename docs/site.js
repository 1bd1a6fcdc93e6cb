// The theme wraps tables, so that wide ones can be scrolled: those can be reached by the keyboard, too.
document$.subscribe(() => setTimeout(() => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
}));
