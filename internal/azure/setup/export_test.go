package setup

// TemplateGUID is the function guid of ARM templates.
var TemplateGUID = templateGUID
