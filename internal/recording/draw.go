package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Sizes in units of the picture; a character is that wide in every monospaced font at textLength.
const (
	charWidth  = 8.0
	lineHeight = 19
	margin     = 18
	top        = 34 // of the window's bar
)

// looks: a dark window reads well on light and on dark pages. Without animation, or where the reader asked for less motion, the
// last picture stands.
const looks = `
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #e6edf3; white-space: pre }
.window { fill: #0d1117; stroke: #57606a }
.prompt { fill: #7ee787 }
.label { fill: #79c0ff }
.cursor { fill: #e6edf3 }
.cover { fill: #0d1117 }
@media (prefers-reduced-motion: reduce) { * { animation: none !important } .typing { display: none } }
`

// draw makes the film: a terminal in which the command is typed and its lines appear at their times.
func draw(command string, lines []line) string {
	columns := len(command) + 2
	for _, l := range lines {
		columns = max(columns, len(l.text))
	}
	width := 2*margin + float64(columns)*charWidth
	height := top + margin + (len(lines)+1)*lineHeight
	var style, body strings.Builder
	style.WriteString(looks)

	// A cover with the cursor at its edge moves off the command, a character at a time.
	typed, n := float64(len(command))*charWidth, len(command)
	fmt.Fprintf(&style, "@keyframes typing { 0%% { transform: none; animation-timing-function: steps(%d) } %s, 100%% { transform: translate(%gpx) } }\n",
		n, percent(typing), typed)
	fmt.Fprintf(&style, ".typing { animation: typing %s infinite; transform: translate(%gpx) }\n", seconds(loop), typed)
	y := top + lineHeight
	start := margin + 2*charWidth
	fmt.Fprintf(&body, "<text class=\"prompt\" x=\"%d\" y=\"%d\">$</text>\n", margin, y)
	fmt.Fprintf(&body, "<text x=\"%g\" y=\"%d\" textLength=\"%g\">%s</text>\n", start, y, typed, escape(command))
	fmt.Fprintf(&body, "<g class=\"typing\"><rect class=\"cover\" x=\"%g\" y=\"%d\" width=\"%g\" height=\"%d\"/>"+
		"<rect class=\"cursor\" x=\"%g\" y=\"%d\" width=\"%g\" height=\"%d\"/></g>\n",
		start, y-14, typed+1, lineHeight, start, y-12, charWidth, lineHeight-4)

	for i, l := range lines {
		y += lineHeight
		if l.text == "" {
			continue
		}
		fmt.Fprintf(&style, "@keyframes l%d { 0%% { opacity: 0 } %s, 100%% { opacity: 1 } }\n.l%d { animation: l%d %s step-end infinite }\n",
			i, percent(l.at), i, i, seconds(loop))
		fmt.Fprintf(&body, "<text class=\"l%d\" x=\"%d\" y=\"%d\" textLength=\"%g\">%s</text>\n", i, margin, y, float64(len(l.text))*charWidth, labelled(l.text))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %d" width="%g" height="%d" xml:space="preserve" role="img" aria-labelledby="title desc">
<title id="title">%s</title>
<desc id="desc">A terminal in which the command is typed. It prints how the model of the rounds gets better while epsilon stays the same, and at the end how
many users it learned from, at which epsilon and delta, and how accurate the model is. The page has the same as text.</desc>
<style>%s</style>
<rect class="window" x="0.5" y="0.5" width="%g" height="%d" rx="8"/>
<circle cx="20" cy="18" r="5" fill="#ff5f57"/><circle cx="38" cy="18" r="5" fill="#febc2e"/><circle cx="56" cy="18" r="5" fill="#28c840"/>
%s</svg>
`, width, height, width, height, escape(command), style.String(), width-1, height-1, body.String())
}

// labelled colours what a line is about: its first words, where blanks set them off from the rest.
func labelled(text string) string {
	if word, rest, ok := strings.Cut(text, "  "); ok && word != "" {
		return "<tspan class=\"label\">" + escape(word) + "</tspan>" + escape("  "+rest)
	}
	return escape(text)
}

func escape(s string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(s)); err != nil {
		panic(err) // a strings.Builder does not fail
	}
	return out.String()
}

func percent(at time.Duration) string { return fmt.Sprintf("%.2f%%", 100*at.Seconds()/loop.Seconds()) }

func seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }
