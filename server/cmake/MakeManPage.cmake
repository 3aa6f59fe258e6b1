# Writes the manual page of PROGRAM (script mode, called by hearth_man_page): its help as preformatted text.
execute_process(COMMAND ${PROGRAM} ${HELP} OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n+$" "" help "${help}")
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REPLACE "\n" "\n\\&" help "${help}") # no line is a request of roff
string(TOUPPER ${NAME} title)
file(WRITE ${OUT} ".TH ${title} 1 \"\" \"Hearth ${VERSION}\"
.SH NAME
${NAME} \\- ${WHATIS}
.SH DESCRIPTION
.nf
${help}
.fi
.SH SEE ALSO
${SEE_ALSO}, and the documents of Hearth, which are installed with it.
")
