// The style sheet of the report: two palettes, one layout. Kept apart because it is data.
#pragma once

namespace tilewright::report {

inline constexpr const char* kStyle = R"css(
:root{--bg:#f6f6f3;--card:#fff;--ink:#1d2026;--soft:#69707b;--line:#e4e4df;--hair:#eeeeea;--c0:#2563b0;--c1:#c8752a;--c2:#1f8f6b;--c3:#8b52a8;--c4:#b23a48;--c5:#6f6a1e;--c6:#3b8ea5;--c7:#7a5c48;
--s0:#8c97a8;--s1:#b7bfca;--s2:#d98a3d;--s3:#3c9d8a;--s4:#8f6fb8;--good:#19805a;--bad:#b8323f;--open:#b4731b;--goodbg:#e4f3ec;--badbg:#fae6e7;--openbg:#fbf0dc;--on:#fff;--edge:#0002}
@media (prefers-color-scheme:dark){:root{--bg:#111318;--card:#191c22;--ink:#e6e8ec;--soft:#979fac;--line:#2a2f38;--hair:#22262e;--c0:#6aa5f0;--c1:#eba162;--c2:#4fc79c;--c3:#c18fe0;--c4:#ee8088;--c5:#c9c05a;--c6:#6cc3da;--c7:#c7a189;
--s0:#6b7688;--s1:#4a525f;--s2:#cf8640;--s3:#3f9f8d;--s4:#9a7cc4;--good:#4cc693;--bad:#f07a83;--open:#e5aa52;--goodbg:#15301f;--badbg:#3a1b1e;--openbg:#362a14;--on:#fff;--edge:#0008}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans","DejaVu Sans",sans-serif;-webkit-font-smoothing:antialiased}
main{max-width:1360px;margin:0 auto;padding:36px 28px 80px}
h1{font-size:27px;line-height:1.2;margin:0 0 6px;letter-spacing:-.015em}h2{font-size:16px;margin:0 0 2px;letter-spacing:-.005em}
.sub{color:var(--soft);margin:0;overflow-wrap:anywhere}.how{color:var(--soft);font-size:13px;margin:0 0 12px}
.head{display:flex;gap:24px;justify-content:space-between;align-items:flex-start;flex-wrap:wrap;margin-bottom:22px}
.pill{font-weight:700;font-size:17px;letter-spacing:.03em;padding:9px 20px;border-radius:999px;white-space:nowrap}
.pill.good{background:var(--goodbg);color:var(--good)}.pill.bad{background:var(--badbg);color:var(--bad)}.pill.open{background:var(--openbg);color:var(--open)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:14px;margin-bottom:18px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px}.tile b{display:block;font-size:24px;font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile b small{font-size:13px;font-weight:500;color:var(--soft);letter-spacing:0}.tile span{color:var(--soft);font-size:13px}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:18px}.wide{grid-column:1/-1}
@media (max-width:900px){.grid{grid-template-columns:minmax(0,1fr)}main{padding:20px 14px 60px}.card{overflow-x:auto}.card svg{min-width:560px}.wide svg{min-width:1000px}
.card,.scroll{background:linear-gradient(to right,var(--card) 60%,transparent) left/40px 100% no-repeat local,linear-gradient(to left,var(--card) 60%,transparent) right/40px 100% no-repeat local,linear-gradient(to right,var(--edge),transparent) left/14px 100% no-repeat scroll,linear-gradient(to left,var(--edge),transparent) right/14px 100% no-repeat scroll,var(--card)}}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:18px 20px 14px;min-width:0}
.card svg{width:100%;height:auto;display:block}
.scroll{overflow-x:auto}.tall{display:none}@media (max-width:700px){.flat{display:none}.tall{display:block}.tall td.n,.tall th.n{white-space:normal;overflow-wrap:anywhere}.tall th,.tall td{padding:5px 4px}.tall td small{font-size:10.5px}.tall table{table-layout:fixed}}
tr.cmd td{padding-top:0}tr:has(+tr.cmd) td{border-bottom:0}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th{font-weight:600;text-align:left;color:var(--soft);font-size:12.5px;padding:6px 9px;border-bottom:1px solid var(--line);white-space:nowrap}
td{padding:6px 9px;border-bottom:1px solid var(--hair);vertical-align:top}tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right;white-space:nowrap}td small{color:var(--soft)}td.name,td.word{white-space:nowrap}td.value{white-space:normal;min-width:26ch}
td.failed small{display:inline-block;white-space:normal;min-width:16ch;max-width:26ch;text-align:right}.roomy table{min-width:860px}
td.notrun{color:var(--soft);font-style:italic}td.failed{color:var(--bad);background:var(--badbg)}td.weak{background:var(--openbg)}
a{color:inherit;text-decoration-color:color-mix(in srgb,currentColor 35%,transparent);text-underline-offset:2.5px}a:hover{text-decoration-color:currentColor}
svg a{text-decoration:none}svg a:hover{opacity:.75}
code{font:12.5px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--hair);padding:1.5px 6px;border-radius:5px;overflow-wrap:anywhere}
.none{border:1.5px dashed var(--line);border-radius:10px;padding:18px;color:var(--soft);font-size:13.5px}.none b{color:var(--ink);font-weight:600}
.clauses{list-style:none;margin:8px 0 0;padding:0}.clauses li{display:grid;grid-template-columns:26px minmax(0,1fr);padding:7px 0;border-bottom:1px solid var(--hair)}.clauses li:last-child{border:0}
.mark{font-weight:700}.good-t{color:var(--good)}.bad-t{color:var(--bad)}.open-t{color:var(--open)}
.clauses small{color:var(--soft);font-size:13px;display:block}
.ways{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:16px;margin-top:10px}.ways h3{font-size:14.5px;margin:0 0 4px}.ways dl{margin:8px 0 0;font-size:13px}
.ways dt{color:var(--soft);float:left;clear:left;margin-right:8px}.ways dd{margin:0;text-align:right;font-variant-numeric:tabular-nums}.ways p{margin:0;font-size:13.5px}.ways p+p{margin-top:3px}
.sw{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px;vertical-align:baseline}
tr:target td{background:var(--openbg)}footer{color:var(--soft);font-size:13px;margin-top:26px}
.t{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;fill:var(--ink);font-variant-numeric:tabular-nums}.t.soft{fill:var(--soft)}.t.strong{font-weight:600}.t.end{text-anchor:end}.t.mid{text-anchor:middle}.t.on{fill:var(--on);font-weight:600}
.grid-none{}line.grid{stroke:var(--hair);stroke-width:1}.axis{stroke:var(--line);stroke-width:1.2}.band{fill:var(--hair)}.whisker{stroke-width:2.4;stroke-linecap:round}
.curve{fill:none;stroke-width:2.2;stroke-linejoin:round}.dashed{stroke-dasharray:4 4;stroke-width:1.4}.veil{opacity:.16}.faint{opacity:.34}.faint2{opacity:.55}.ring{fill:var(--card);stroke-width:2.4}
.steady{stroke:var(--good);stroke-width:1.6;stroke-dasharray:5 3}.stall{stroke:var(--open);stroke-width:.8;opacity:.5}.bound{stroke:var(--soft);stroke-width:1.8}
.hatch{fill:url(#hatch);stroke:var(--soft);stroke-width:1}.hatch.bad{stroke:var(--bad)}
.s0{fill:var(--s0)}.s1{fill:var(--s1)}.s2{fill:var(--s2)}.s3{fill:var(--s3)}.s4{fill:var(--s4)}
.f-good{fill:var(--good)}.f-bad{fill:var(--bad)}.f-open{fill:var(--open)}.f-soft{fill:var(--soft)}.k-good{stroke:var(--good)}.k-bad{stroke:var(--bad);fill:none;stroke-width:1.6}.k-open{stroke:var(--open)}.k-soft{stroke:var(--soft)}
.t.k-open-text{fill:var(--open)}.t.k-bad-text{fill:var(--bad)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}
.k0{stroke:var(--c0)}.k1{stroke:var(--c1)}.k2{stroke:var(--c2)}.k3{stroke:var(--c3)}
.t.c0{fill:var(--c0)}.t.c1{fill:var(--c1)}.t.c2{fill:var(--c2)}.t.c3{fill:var(--c3)}
.b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}.b3{background:var(--c3)}.b4{background:var(--c4)}.b5{background:var(--c5)}.b6{background:var(--c6)}.b7{background:var(--c7)}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}main{max-width:none;padding:0}}
)css";

}  // namespace tilewright::report
